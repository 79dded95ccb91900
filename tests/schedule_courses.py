"""The course of each schedule, by hand."""

# At 0, 2, 4 (the warmup's end), 6, 8, 9, 10 of 10 steps or minutes, as shares of the full rate.
COURSES = {
    "nezha": (0, 0.5, 1, 4 / 6, 2 / 6, 1 / 6, 0),
    "bert": (0, 0.5, 0.6, 0.4, 0.2, 0.1, 0),
    "cosine": (0, 0.5, 1, 0.75, 0.25, 0.5 - 0.75**0.5 / 2, 0),
    "trapezoid": (0, 0.5, 1, 1, 1, 0.5, 0),
    "constant": (0, 0.5, 1, 1, 1, 1, 1),
}
