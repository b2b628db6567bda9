// Runs the modules of figures in a page without a kernel: each gets a model that keeps its state here.
(() => {
  const modules = {
/* modules */
  };

  class Model {
    constructor(state) {
      this.state = state;
      this.listeners = [];
    }
    get(name) {
      return this.state[name];
    }
    set(name, value) {
      const changes = typeof name === "string" ? { [name]: value } : name;
      for (const [key, given] of Object.entries(changes)) {
        if (this.state[key] === given) continue;
        this.state[key] = given;
        for (const [event, callback] of [...this.listeners]) {
          if (event === `change:${key}`) callback(this, given);
          if (event === "change") callback(this);
        }
      }
    }
    on(event, callback) {
      this.listeners.push([event, callback]);
    }
    off(event, callback) {
      this.listeners = this.listeners.filter(
        ([e, c]) => (event && e !== event) || (callback && c !== callback),
      );
    }
    save_changes() {} // there is no kernel to tell
    send() {}
  }

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const [pieces, states] = JSON.parse(await new Response(stream).text());
    // A drawing comes as the numbers of its pieces, most of which its other frames have too.
    const whole = (value) => {
      if (Array.isArray(value)) return value.map(whole);
      if (value === null || typeof value !== "object") return value;
      if (value.$) return value.$.map((number) => pieces[number]).join("");
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, whole(one)]));
    };
    return whole(states);
  }

  async function showAll() {
    const figures = await unpack(document.getElementById("figure-states").textContent);
    const models = figures.map(({ state }) => new Model(state));
    const places = [...document.querySelectorAll("[data-figure]")];
    for (const place of places) {
      const number = Number(place.dataset.figure);
      try {
        // Some turn others: those know all models of the page.
        await modules[figures[number].module].render({ model: models[number], el: place, models });
      } catch (error) {
        place.textContent = `This figure could not be shown: ${error.message}`;
        console.error(error);
      }
    }
    return places.length;
  }

  // Styles for paper hold before anything is printed, so that what has to fit can be measured.
  const onPaper = document.documentElement.classList;
  window.addEventListener("beforeprint", () => onPaper.add("on-paper"));
  window.addEventListener("afterprint", () => onPaper.remove("on-paper"));

  window.figuresReady = showAll();
})();
