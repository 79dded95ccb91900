"""Models by name: `hf:OWNER/NAME[@REVISION]` and `modelscope:OWNER/NAME[@REVISION]`.

The libraries of the two hubs ask and store, with their own caches, tokens, mirrors and offline
modes. Only files that are read are fetched, one set of weights among them; none of them is run.
"""

import contextlib
import errno
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError, first_line, install_command
from nezha_tf.util.files import read_object
from nezha_tf.util.settings import FLAGS_FILE

# The first of these that exists in a folder is read.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_BEST_FILE = "best_checkpoint.json"
# What is read beside weights; all of it is small.
_BESIDE = (
    "config.json",
    "bert_config.json",
    "albert_config.json",
    "vocab.txt",
    "tokenizer_config.json",
    "task.json",
    _BEST_FILE,
    "1_Pooling/config.json",
    "modules.json",
    "sentence_bert_config.json",
    "README.md",  # for the licence
)
_CONFIGS = _BESIDE[:3]
_PART = r"-(\d{5})-of-(\d{5})"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"(?P<repository>([\w.-]+/)?[\w.-]+)(@(?P<revision>[^\s@]+))?")
# How many names of files a message shows.
_SHOWN = 8


class Hub(NamedTuple):
    """A hub of models."""

    library: str  # the module that asks it, which the extra `[hub]` installs
    listed: Callable  # (repository, revision or None) -> (commit, names of files)
    fetched: Callable  # (repository, revision or None, name of a file) -> its path
    cached: Callable  # (repository, revision or None) -> `_Snapshot` or None; asks nobody
    # Called as `fetched` after all is there: the cache keeps what the revision means.
    noted: Callable
    errors: Mapping[str, str]  # the name of a class of the library's exceptions -> what it means
    token: str  # how a user gives a token
    mirror: str  # the environment variable that names another address of the hub


class _Snapshot(NamedTuple):
    folder: str
    commit: str

    @classmethod
    def of(cls, path):
        """Returns that of a file in the cache, whose folder has the commit's name."""
        folder = os.path.dirname(path)
        return cls(folder, os.path.basename(folder))


# Name to `_Snapshot`: a process asks once.
_known: dict[str, _Snapshot] = {}


def is_name(path):
    """Whether a path or None names a model on a hub; a file or folder of this name comes first."""
    if path is None:
        return False
    path = os.fspath(path)
    return path.partition(":")[0] in HUBS and ":" in path and not os.path.lexists(path)


def folder_of(name):
    """Returns the folder of a model on a hub, with the files that are read.

    What is not in the library's cache is fetched. A name with a whole commit asks nobody if the
    cache has the model. A missing library or model, a refusal, or no answer is a `UserError`.
    """
    return _snapshot(os.fspath(name)).folder


def pinned(name):
    """Returns the name with the commit that it means now; fetches as `folder_of` does."""
    prefix, _, repository, _ = _parsed(name)
    return f"{prefix}:{repository}@{_snapshot(name).commit}"


def repository_of(name):
    """Returns OWNER/NAME of the name of a model on a hub."""
    return _parsed(name)[2]


def recorded(folder, name):
    """Returns the name with the commit that a run began with, or None.

    Args:
      folder: the --output_dir of the run, or of several runs.
      name: the name that is given now. One with another commit is not what the run began with.
    """
    if not folder or not is_name(name):
        return None
    prefix, _, repository, revision = _parsed(name)
    start = f"--init_checkpoint={prefix}:{repository}@"
    escaped = re.sub(r"([*?[])", r"[\1]", os.fspath(folder))
    for below in ("", "*/*/"):  # one run, or the runs of a sweep
        for path in sorted(storage.glob(f"{escaped}/{below}{FLAGS_FILE}")):
            with storage.open_text(path) as file:
                flag = next((line.strip() for line in file if line.startswith(start)), start)
            commit = flag.removeprefix(start)
            if commit and (not _COMMIT.fullmatch(revision or "") or revision == commit):
                return f"{prefix}:{repository}@{commit}"
    return None


def holds(path):
    """Whether a file lies in a folder that this process took from a hub."""
    return os.path.dirname(path) in {snapshot.folder for snapshot in _known.values()}


def _parsed(name):
    """Returns (prefix, `Hub`, repository, revision or None); raises `UserError`."""
    prefix, _, rest = name.partition(":")
    match = _NAME.fullmatch(rest)
    if not match:
        raise UserError(
            f"{name!r} is neither a file or folder here nor a name on a hub; write "
            f"{prefix}:OWNER/NAME or {prefix}:OWNER/NAME@REVISION"
        )
    return prefix, HUBS[prefix], match["repository"], match["revision"]


def _snapshot(name):
    if name in _known:
        return _known[name]
    prefix, hub, repository, revision = _parsed(name)
    try:
        importlib.import_module(hub.library)
    except ImportError as error:
        raise UserError(
            f"{name} needs {hub.library} ({first_line(error)}): {install_command('hub')}"
        ) from error
    with _as_user_error(hub, name):
        snapshot = _from_cache(hub, repository, revision)
        snapshot = snapshot or _from_hub(hub, name, repository, revision)
    _known[name] = _known[f"{prefix}:{repository}@{snapshot.commit}"] = snapshot
    return snapshot


def _from_cache(hub, repository, revision):
    if not _COMMIT.fullmatch(revision or ""):
        return None
    snapshot = hub.cached(repository, revision)
    is_whole = snapshot and _is_whole(snapshot) and "vocab.txt" in os.listdir(snapshot.folder)
    return snapshot if is_whole else None


def _from_hub(hub, name, repository, revision):
    """Fetches what the hub has; if it does not answer, takes what the cache has."""
    try:
        commit, names = hub.listed(repository, revision)
    except Exception as error:
        snapshot = None if _is_answer(error) else hub.cached(repository, revision)
        if not snapshot or not _is_whole(snapshot):
            raise
        if not _is_offline(error):
            console.tell(
                f"warning: {name}: no answer ({type(error).__name__}); taken from the cache, "
                f"commit {snapshot.commit}",
                file=sys.stderr,
            )
        return snapshot
    weights = _weights(names)
    if not weights or not set(_CONFIGS) & set(names):
        raise UserError(_nothing_to_read(name, weights, names))
    beside = [file for file in _BESIDE if file in names]
    # The weights come last: a folder that has them has all.
    *_, config = (hub.fetched(repository, commit, file) for file in reversed(beside))
    folder = os.path.dirname(config)
    for file in _weights(names, folder):
        hub.fetched(repository, commit, file)
    hub.noted(repository, revision, beside[0])
    return _Snapshot(folder, commit)


def _weights(names, folder=None):
    """Returns the names of one set of weights, whole, among names of files; [] without any.

    In a `folder` with `_BEST_FILE`, one of a run's checkpoints is read.
    """
    names = set(names)
    for first in WEIGHT_FILES:
        stem, suffix = re.fullmatch(r"(\w+)(\.\w+)(?:\.index\.json)?", first).groups()
        parts = _parts(names, stem, suffix) if first.endswith(".json") else []
        if first in names and (parts or not first.endswith(".json")):
            return [*parts, first]
    indices = sorted(name for name in names if name.endswith(".index") and "/" not in name)
    data = {name: _parts(names, name.removesuffix("index") + "data", "") for name in indices}
    prefixes = [name.removesuffix(".index") for name in indices if data[name]]
    read = [f"{prefix}.index" for prefix in _read_of(prefixes, folder)]
    files = [file for name in read for file in (*data[name], name)]
    return files + ["checkpoint"] * ("checkpoint" in names and bool(files))


def _parts(names, stem, suffix):
    """Returns the sorted names of a file in parts if all are there, else []."""
    matches = [re.fullmatch(re.escape(stem) + _PART + re.escape(suffix), name) for name in names]
    counts = {match[0]: int(match[2]) for match in matches if match}
    return sorted(counts) if counts and set(counts.values()) == {len(counts)} else []


def _read_of(prefixes, folder):
    """Returns the best or newest of a run's numbered checkpoints; others as they are."""
    matches = filter(None, (re.fullmatch(r"model\.ckpt-(\d+)", prefix) for prefix in prefixes))
    steps = {int(match[1]): match[0] for match in matches}
    if not steps:
        return prefixes
    best = (read_object(os.path.join(folder, _BEST_FILE)) if folder else None) or {}
    step = best.get("global_step")  # of any type: the file comes from anywhere
    return [steps.get(step if type(step) is int else None, steps[max(steps)])]


def _is_whole(snapshot):
    names = os.listdir(snapshot.folder)
    return bool(set(_CONFIGS) & set(names) and _weights(names, snapshot.folder))


def _nothing_to_read(name, weights, names):
    what = "no configuration (config.json or bert_config.json)" if weights else "no weights"
    shown = sorted(names, key=lambda file: (file.count("/"), file))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (
        f"{name} has {what} that can be read; it has {', '.join(shown[:_SHOWN]) or 'no file'}{more}"
    )


@contextlib.contextmanager
def _as_user_error(hub, name):
    """Makes a `UserError` of what the library raises, whose exceptions have no common class."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{name}: {_meaning(hub, error)}") from error


def _meaning(hub, error):
    for kind in type(error).__mro__:
        if kind.__name__ in hub.errors:
            return hub.errors[kind.__name__]
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return f"no space is left in the cache of {hub.library}; make room, then start again"
    status = _status(error)
    if status in (401, 403):
        return f"access is refused ({status}); {hub.token}"
    if status == 404:
        return "it is not there, or has no such revision; check the name"
    if status:
        return f"the hub answers with status {status} ({first_line(error)}); start again later"
    if getattr(error, "filename", None):
        return f"{error.filename}: {error.strerror}"
    return (
        f"the hub does not answer, or was cut off ({type(error).__name__}: {first_line(error)}); "
        f"{hub.mirror} names a mirror; start again: the files that came whole stay"
    )


def _status(error):
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status or getattr(error, "status_code", None)


def _is_answer(error):
    """Whether the hub has answered, so that what the cache has is not what was asked for."""
    return (_status(error) or 500) < 500


def _is_offline(error):
    return type(error).__name__ == "OfflineModeIsEnabled"


def _listed_by_hugging_face(repository, revision):
    from huggingface_hub import HfApi, constants

    # Without a limit, an address that a firewall swallows holds the program for minutes.
    limit = constants.HF_HUB_ETAG_TIMEOUT
    info = HfApi().model_info(repository, revision=revision, timeout=limit)
    return info.sha, [file.rfilename for file in info.siblings]


def _fetched_by_hugging_face(repository, revision, file):
    from huggingface_hub import hf_hub_download

    return hf_hub_download(repository, file, revision=revision)


def _cached_by_hugging_face(repository, revision):
    from huggingface_hub import try_to_load_from_cache

    for file in _CONFIGS:
        path = try_to_load_from_cache(repository, file, revision=revision)
        if isinstance(path, str):
            return _Snapshot.of(path)
    return None


def _listed_by_modelscope(repository, revision):
    from modelscope_hub import HubApi

    # This listing has the commit that last changed each file; the newest of them made the state.
    rows = HubApi().legacy.list_repo_files(repository, "model", revision or "master")
    rows = [row for row in rows if row.get("Type") != "tree"]
    newest = max(rows, key=lambda row: row.get("CommittedDate") or 0, default={})
    return newest.get("Revision") or revision or "master", [row["Path"] for row in rows]


def _fetched_by_modelscope(repository, revision, file, **options):
    from modelscope_hub import HubApi

    return str(HubApi().download_file(repository, "model", file, revision=revision, **options))


def _cached_by_modelscope(repository, revision):
    from modelscope_hub.errors import CacheNotFound

    for file in _CONFIGS:
        with contextlib.suppress(CacheNotFound):
            path = _fetched_by_modelscope(repository, revision, file, local_files_only=True)
            return _Snapshot.of(path)
    return None


HUBS = {
    "hf": Hub(
        "huggingface_hub",
        _listed_by_hugging_face,
        _fetched_by_hugging_face,
        _cached_by_hugging_face,
        _fetched_by_hugging_face,
        errors={
            "GatedRepoError": "its owner lets in only who has asked; ask on its page, then set "
            "HF_TOKEN to your token, or call `hf auth login`",
            "RevisionNotFoundError": "it has no such revision",
            "RepositoryNotFoundError": "it is not there, or is private; check the name, and for a "
            "private one set HF_TOKEN to your token",
            "OfflineModeIsEnabled": "HF_HUB_OFFLINE is set, and the cache does not have it whole; "
            "start once without HF_HUB_OFFLINE",
            "HFValidationError": "that cannot be a name on this hub",
        },
        token="set HF_TOKEN to your token",
        mirror="HF_ENDPOINT",
    ),
    "modelscope": Hub(
        "modelscope_hub",
        _listed_by_modelscope,
        _fetched_by_modelscope,
        _cached_by_modelscope,
        lambda repository, revision, file: None,  # the cache finds its only commit
        errors={
            "NotExistError": "it is not there, or is private; check the name, and for a private "
            "one set MODELSCOPE_API_TOKEN to your token",
        },
        token="set MODELSCOPE_API_TOKEN to your token",
        mirror="MODELSCOPE_ENDPOINT",
    ),
}
