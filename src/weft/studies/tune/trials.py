"""What a search has found so far: its trials, the best of them, and which settings matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.errors import WeftError
from weft.studies.tune.space import counted, importances, open_storage, reason


def stored_searches(journal: Path) -> list[Any]:
    """The searches that a journal holds; nothing is written into it."""
    import optuna

    try:
        storage = open_storage(str(journal))
        names = optuna.get_all_study_names(storage)
        found = [optuna.load_study(study_name=name, storage=storage) for name in names]
    except Exception as error:  # a damaged journal fails in many ways, all of them with one meaning
        raise WeftError(f"{journal} is damaged, or holds no search ({reason(error)}); restore it") from error
    if not found:
        raise WeftError(f"{journal} is damaged, or holds no search yet; restore it, or wait for its first trial")
    return found


def summary(search: Any, source: str, model: str, asked: int = 0) -> dict[str, Any]:
    """The best settings, all trials, and which settings matter."""
    trials = search.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    best = max(complete, key=lambda trial: trial.value, default=None)
    return {
        "source": source,
        "model": model,
        "best": None if best is None else {"number": best.number, "value": best.value, "settings": best.params},
        "states": {state: sum(t.state.name == state for t in trials) for state in ("COMPLETE", "PRUNED", "FAIL")},
        "trials": [{"number": t.number, "value": t.value, "state": t.state.name, "settings": t.params} for t in trials],
        "importance": importances(search),
        "reason": next((t.user_attrs["reason"] for t in trials if "reason" in t.user_attrs), ""),
        "missing": max(0, asked - len(counted(search))),
    }
