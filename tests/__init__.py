"""Tests; the directories mirror the packages."""
