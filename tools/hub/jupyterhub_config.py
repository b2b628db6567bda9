"""JupyterHub for a class on one Linux server: a process, a folder and a memory limit a student.

`make hub` starts it; "For teachers" in README.md leads to the page that explains it. Settings are
read from the environment (HUB_...), and last of all from `config.py` in the Hub's own folder, where
a teacher can set anything that JupyterHub knows, without changing a file of the course.
"""

# ruff: noqa: F821  (JupyterHub provides `c`, `get_config` and `load_subconfig`)

import os
import secrets
import shutil
import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(os.environ.get("HUB_FOLDER") or COURSE / ".hub").resolve()
IS_ROOT = os.geteuid() == 0
# `accounts`: students sign in with their Linux accounts, and each one's processes are theirs alone.
# That needs root. `trial`: one password for all, and all processes are of the user who starts this.
LOGIN = os.environ.get("HUB_LOGIN") or ("accounts" if IS_ROOT else "trial")
IDLE_MINUTES = float(os.environ.get("HUB_IDLE") or 60)
# Threads that NumPy's library may use in a process: one, unless there are cores for more.
THREADS = max(1, (os.cpu_count() or 1) // int(os.environ.get("HUB_STUDENTS") or 40))

c = get_config()
FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
if shutil.which("traefik") is None:
    sys.exit(
        "There is no traefik, the Hub's proxy: `python3 tools/install.py lab hub` installs it."
    )


def password(name: str) -> str:
    """A password that is made once and kept in a file which only this user can read."""
    path = FOLDER / name
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(8 if name == "class_password" else 24) + "\n")
    return path.read_text().strip()


# The Hub's own files, and the proxy in front of it
c.JupyterHub.ip = "127.0.0.1"  # `make hub ARGS="--ip 0.0.0.0"` lets other machines in
c.JupyterHub.port = 8000
c.JupyterHub.db_url = f"sqlite:///{FOLDER / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(FOLDER / "cookie_secret")
c.JupyterHub.proxy_class = "traefik_file"
c.TraefikFileProviderProxy.static_config_file = str(FOLDER / "traefik.toml")
c.TraefikFileProviderProxy.dynamic_config_file = str(FOLDER / "routes.toml")
c.TraefikFileProviderProxy.traefik_api_username = "hub"
c.TraefikFileProviderProxy.traefik_api_password = password("proxy_password")
c.TraefikFileProviderProxy.extra_static_config = {
    "global": {"checkNewVersion": False, "sendAnonymousUsage": False}
}

# Who may come in
c.Authenticator.username_pattern = r"[a-z][a-z0-9_-]{0,31}"  # also the name of a folder
if LOGIN == "accounts":
    if not IS_ROOT:
        sys.exit("HUB_LOGIN=accounts starts processes as other users, which only root can do.")
    c.JupyterHub.authenticator_class = "pam"
    c.PAMAuthenticator.allowed_groups = {"students", "teachers"}
    c.PAMAuthenticator.admin_groups = {"teachers"}
    c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
elif LOGIN == "trial":
    c.JupyterHub.authenticator_class = "shared-password"
    c.Authenticator.allow_all = True
    c.Authenticator.admin_users = {"teacher"}
    c.SharedPasswordAuthenticator.user_password = password("class_password")
    c.SharedPasswordAuthenticator.admin_password = password("teacher_password")
    c.JupyterHub.spawner_class = "jupyterhub.spawner.SimpleLocalProcessSpawner"
    c.SimpleLocalProcessSpawner.home_dir_template = str(FOLDER / "students" / "{username}")
    print(
        f"A trial: every name may come in, with the password in {FOLDER / 'class_password'}; the "
        f"name `teacher` with that in {FOLDER / 'teacher_password'}. Students' processes are all "
        f"of {'root, who may do anything here' if IS_ROOT else 'one user'}: nothing keeps them "
        "from each other's files.",
        flush=True,
    )
else:
    sys.exit(f"HUB_LOGIN={LOGIN} is not known: set it to trial or accounts, or leave it unset.")

# A student's server
c.Spawner.cmd = [sys.executable, str(Path(__file__).resolve().parent / "student.py")]
c.Spawner.args = [
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    f"--MappingKernelManager.cull_idle_timeout={IDLE_MINUTES * 60:.0f}",  # none that is on screen
    *(["--allow-root"] if IS_ROOT and LOGIN == "trial" else []),
]
c.Spawner.notebook_dir = "~/attention"  # as in student.py
c.Spawner.default_url = "/lab/tree/notebooks"
# Of each process; student.py sets it. JupyterHub wants a unit, even of nothing.
memory = os.environ.get("HUB_MEMORY") or "2G"
c.Spawner.mem_limit = "0G" if memory == "0" else memory
c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": str(COURSE / "tools" / "jupyter"),
    "JUPYTER_PATH": str(COURSE / "tools" / "jupyter"),  # colours cells that begin with %%kernel
    "OPENBLAS_NUM_THREADS": str(THREADS),
    "OMP_NUM_THREADS": str(THREADS),
}
c.Spawner.env_keep = [
    "PATH", "LANG", "LC_ALL", "JUPYTERHUB_SINGLEUSER_APP", "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES", "HELPERS_DEVICE", "HELPERS_LOCKS", "HELPERS_LOCK_SECONDS",
]  # fmt: skip
c.Spawner.start_timeout = 300  # when the whole class comes in at once
c.Spawner.http_timeout = 300

# Servers that nobody uses any more are stopped; files stay
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["idle-culler"],
    }
]
c.JupyterHub.services = [
    {
        "name": "idle-culler",
        "command": [
            sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={IDLE_MINUTES * 60:.0f}",
        ],
    }
]  # fmt: skip

own = FOLDER / "config.py"
if own.exists():
    load_subconfig(str(own))
