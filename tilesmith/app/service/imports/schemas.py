"""Answers about what was imported."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Weights(BaseModel):
    """An input of which the file has the values."""

    name: str
    type: str
    shape: list[int]


class Imported(BaseModel):
    """A pipeline that was made of a file."""

    importer: str
    document: dict[str, Any] = Field(description="The pipeline in canonical form")
    notes: list[str] = Field(description="For who reads the source")
    weights: list[Weights] = Field(description="Inputs of which the file has the values; runs are given them")
