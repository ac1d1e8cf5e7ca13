"""Notices that every candidate fails for one reason, which the candidates still to come would only repeat."""

from __future__ import annotations

from weft.errors import WorkFailed

ENOUGH = 3  # runs, and as many different candidates where there are so many


class Alike:
    """The failures of a study of so many candidates, as long as nothing has gone well."""

    def __init__(self, candidates: int, any_finished: bool) -> None:
        self.candidates = min(ENOUGH, candidates)
        self.hopeful = any_finished
        self.failed: list[str] = []
        self.cause = ""

    def note(self, candidate: str, cause: str) -> None:
        """How a run ended: the cause of its failure, or nothing. Raises once there is no point in going on.

        A cause that depends on the candidate, such as a lack of memory, is given as nothing too.
        """
        if not cause:
            self.hopeful = True
        if self.failed and cause != self.cause:
            self.hopeful = True
        self.cause = cause
        self.failed.append(candidate)
        if not self.hopeful and len(self.failed) >= ENOUGH and len(set(self.failed)) >= self.candidates:
            names = ", ".join(dict.fromkeys(self.failed))
            raise WorkFailed(f"stopped: the first {len(self.failed)} runs ({names}) all failed alike: {cause}")
