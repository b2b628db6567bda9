// Colours cells that begin with %%kernel as C++: a JupyterLab extension written to run as it is,
// with no build. JupyterLab loads it as a container of module federation, which has init and get.
(() => {
  const CPP = "text/x-c++src";
  const isKernel = (source) => /^\s*%%kernel\b/.test(source);
  let shared = null;

  // A package that JupyterLab itself has loaded: its tokens are the ones that plugins ask for.
  async function loaded(name) {
    const versions = Object.values(shared[name] || {});
    const version = versions.find((one) => one.loaded) || versions[0];
    return (await version.get())();
  }

  function watch(model) {
    if (model.type !== "code") return;
    let usual = model.mimeType;
    const set = () => {
      if (model.isDisposed) return;
      if (model.mimeType !== CPP) usual = model.mimeType;
      const wanted = isKernel(model.sharedModel.getSource()) ? CPP : usual;
      if (model.mimeType !== wanted) model.mimeType = wanted;
    };
    model.contentChanged.connect(set);
    model.mimeTypeChanged.connect(set); // the notebook sets it when its kernel answers
    set();
  }

  function watchAll(panel) {
    const seen = new WeakSet();
    const sweep = () => {
      const cells = panel.content.model ? panel.content.model.cells : [];
      for (const model of cells) {
        if (!seen.has(model)) {
          seen.add(model);
          watch(model);
        }
      }
    };
    const follow = () => {
      if (panel.content.model) panel.content.model.cells.changed.connect(sweep);
      sweep();
    };
    panel.content.modelChanged.connect(follow);
    follow();
  }

  async function plugin() {
    const { INotebookTracker } = await loaded("@jupyterlab/notebook");
    return {
      id: "kernel-cells:plugin",
      description: "Colours cells that begin with %%kernel as C++.",
      autoStart: true,
      requires: [INotebookTracker],
      activate: (_, tracker) => {
        tracker.forEach(watchAll);
        tracker.widgetAdded.connect((_, panel) => watchAll(panel));
      },
    };
  }

  const containers = (window._JUPYTERLAB = window._JUPYTERLAB || {});
  containers["kernel-cells"] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const found = await plugin();
      return () => ({ __esModule: true, default: found });
    },
  };
})();
