"""Learning from a teacher (Hinton et al. 2015; Touvron et al. 2021, DeiT): what it says of a batch, and the loss of it.

soft  (1 − λ)·CE(labels, z) + λ·τ²·KL(softmax(z_teacher/τ) ‖ softmax(z/τ))
hard  (1 − λ)·CE(labels, z) + λ·CE(argmax z_teacher, z)

A network with two heads answers the labels with the first and the teacher with the second; any other answers both with
its one. A batch brings labels and the teacher's outputs side by side in its targets: (batch, 2, K).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from weft.data.batch.loader import Batch, Batches
from weft.data.config import AugmentConfig
from weft.data.open.source import Source
from weft.data.transform.transforms import ImageTransform, Transform
from weft.errors import WeftError
from weft.training.config import RunConfig
from weft.training.objective import Objective
from weft.training.teaching.teacher import Teacher


@dataclass(frozen=True)
class TaughtObjective(Objective):
    """The loss of labels and of a teacher; without its answers, as in evaluations, that of the labels alone."""

    hard: bool = False
    temperature: float = 3.0
    weight: float = 0.1

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        if targets.ndim < 3:
            return super().losses(outputs, targets)
        first, second = outputs.unbind(1) if outputs.ndim == 3 else (outputs, outputs)
        weights = self.example_weights(targets)
        own = super().losses(first, self.labels(targets))
        return (1 - self.weight) * own + self.weight * weights * self.apart(second.float(), targets[:, 1])

    def apart(self, outputs: Tensor, answers: Tensor) -> Tensor:
        """How far outputs (batch, K) are from what the teacher says, for each example: (batch,)."""
        if self.task == "binary":  # one logit z is the pair (0, z)
            outputs, answers = (F.pad(logits, (1, 0)) for logits in (outputs, answers))
        if self.hard:
            return F.cross_entropy(outputs, answers.argmax(1), reduction="none")
        said, mine = (F.log_softmax(logits / self.temperature, 1) for logits in (answers, outputs))
        return self.temperature**2 * F.kl_div(mine, said, reduction="none", log_target=True).sum(1)

    def labels(self, targets: Tensor) -> Tensor:
        """The labels of a batch that has a teacher's answers beside them, as `example_losses` takes them."""
        return targets[:, 0, 0] if self.task == "binary" else targets[:, 0]

    def example_weights(self, targets: Tensor) -> Tensor:
        return super().example_weights(self.labels(targets) if targets.ndim == 3 else targets)


def with_answers(batch: Batch, answers: Tensor) -> Batch:
    """The batch with the teacher's outputs (batch, K) beside its labels."""
    labels, count = batch.targets, answers.shape[1]
    if labels.ndim == 1:
        labels = labels[:, None] if count == 1 else F.one_hot(labels, count)
    return replace(batch, targets=torch.stack([labels.float(), answers.float()], 1))


@dataclass(frozen=True)
class Lessons:
    """A teacher for one run: it answers each row once where images stay as they are, else each batch as it comes."""

    teacher: Teacher
    config: RunConfig
    transform: Transform
    """of the student"""

    @property
    def live(self) -> bool:
        """Whether the teacher must see the very images of a batch."""
        return isinstance(self.transform, ImageTransform) and self.config.augment.random

    def require_same_pixels(self) -> None:
        """Where it must, refuse images that are not made as the teacher's are, but for their normalisation."""
        mine, theirs = self.transform, self.teacher.transform
        if not self.live or not isinstance(mine, ImageTransform) or not isinstance(theirs, ImageTransform):
            return
        for name, flag in {"size": "--img-size", "channels": "--channels", "crop": "--crop"}.items():
            wanted, have = getattr(theirs, name), getattr(mine, name)
            if wanted != have:
                raise WeftError(
                    f"--teacher {self.teacher.folder} takes images with {flag} {wanted}, these have {have}, and it "
                    f"must see them as augmentation changes them; use {flag} {wanted}, or switch augmentation off: "
                    f"{switched_off(self.config.augment)}"
                )

    @property
    def note(self) -> str:
        """What is said of it before the run."""
        asked, how = self.config.teaching, "each batch as augmentation changes it" if self.live else "each row once"
        named = f"{self.teacher.folder} ({self.teacher.predictor.card.model})"
        return f"teacher {named}, asked about {how}; {asked.distill} answers have {asked.weight:g} of the loss"

    def described(self) -> dict[str, Any]:
        """The teacher, for the record."""
        asked, teacher = self.config.teaching, self.teacher
        of = {"folder": teacher.folder, "digest": teacher.digest, "model": teacher.predictor.card.model}
        return {**of, "distill": asked.distill, "weight": asked.weight, "live": self.live}

    def of(self, batches: Batches, source: Source) -> Batches:
        """Batches of the training split with the teacher's answers."""
        if self.live:
            return batches.completed(lambda batch: with_answers(batch, self.answers_to(batch)))
        known = self.teacher.answers(source, "train")
        return batches.completed(lambda batch: with_answers(batch, known[batch.index]))

    @torch.no_grad()
    def answers_to(self, batch: Batch) -> Tensor:
        """The teacher's outputs for the images of a batch, which are normalised as it was taught: (batch, K)."""
        mine, theirs = self.transform, self.teacher.transform
        assert isinstance(mine, ImageTransform) and isinstance(theirs, ImageTransform)
        network, images = self.teacher.predictor.network, batch.inputs["x"]
        if (mine.mean, mine.std) != (theirs.mean, theirs.std):
            mean, std, other, deviation = (
                torch.tensor(values).view(-1, 1, 1) for values in (mine.mean, mine.std, theirs.mean, theirs.std)
            )
            images = images * (std / deviation) + (mean - other) / deviation
        if self.config.execution.device != "cpu" and torch.cuda.is_available():
            return network.cuda()(images.cuda()).cpu()
        return network(images)

    def objective(self, plain: Objective, batches: Batches) -> TaughtObjective:
        """The loss of labels and teacher; its constant guess is judged on the first batch, teacher included."""
        asked = self.config.teaching
        known = {field.name: getattr(plain, field.name) for field in fields(plain)}
        found = TaughtObjective(
            **known, hard=asked.distill == "hard", temperature=asked.distill_temperature, weight=asked.weight
        )
        targets = batches[0].targets
        return replace(found, guess=float(found.chance(targets, found.count(targets, len(targets), lambda sum: sum))))


def switched_off(augment: AugmentConfig) -> str:
    """The flags that leave the images of a run as they are."""
    plain = {"resized_crop": "no --resized-crop", "crop_padding": "--crop-padding 0", "flip": "--no-flip"}
    plain |= {"color_jitter": "--color-jitter 0", "reprob": "--reprob 0", "mixup": "--mixup 0", "cutmix": "--cutmix 0"}
    plain |= {"augmentation": "no --augmentation"}
    policy = ["--policy none"] if augment.policy != "none" else []
    return " ".join([flags for name, flags in plain.items() if getattr(augment, name)] + policy)
