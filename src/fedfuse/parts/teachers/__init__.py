"""The ensemble of teachers: the clients, their average, or models sampled around them."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.teachers.average import AverageTeacher
from fedfuse.parts.teachers.base import RoundModels, SampledTeachers, TeacherKind
from fedfuse.parts.teachers.clients import ClientTeachers
from fedfuse.parts.teachers.dirichlet import DirichletTeachers
from fedfuse.parts.teachers.ensemble import Asked, Ensemble
from fedfuse.parts.teachers.gaussian import GaussianTeachers
from fedfuse.parts.teachers.question import InputBatch, Question, Target, Teacher
from fedfuse.parts.teachers.swag import SwagTeachers
from fedfuse.parts.teachers.tally import Tally

AnyTeacher = Annotated[
    TeacherKind, OneOf(ClientTeachers, AverageTeacher, GaussianTeachers, DirichletTeachers, SwagTeachers)
]

__all__ = [
    "AnyTeacher",
    "Asked",
    "AverageTeacher",
    "ClientTeachers",
    "DirichletTeachers",
    "Ensemble",
    "GaussianTeachers",
    "InputBatch",
    "Question",
    "RoundModels",
    "SampledTeachers",
    "SwagTeachers",
    "Tally",
    "Target",
    "Teacher",
    "TeacherKind",
]
