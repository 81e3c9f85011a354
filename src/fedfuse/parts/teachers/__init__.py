"""The ensemble of teachers: the clients, their average, or models sampled around them."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.teachers.average import AverageTeacher
from fedfuse.parts.teachers.base import RoundModels, SampledTeachers, TeacherKind
from fedfuse.parts.teachers.clients import ClientTeachers
from fedfuse.parts.teachers.dirichlet import DirichletTeachers
from fedfuse.parts.teachers.ensemble import Ensemble, Target, Teacher
from fedfuse.parts.teachers.gaussian import GaussianTeachers
from fedfuse.parts.teachers.swag import SwagTeachers

AnyTeacher = Annotated[
    TeacherKind, OneOf(ClientTeachers, AverageTeacher, GaussianTeachers, DirichletTeachers, SwagTeachers)
]

__all__ = [
    "AnyTeacher",
    "AverageTeacher",
    "ClientTeachers",
    "DirichletTeachers",
    "Ensemble",
    "GaussianTeachers",
    "RoundModels",
    "SampledTeachers",
    "SwagTeachers",
    "Target",
    "Teacher",
    "TeacherKind",
]
