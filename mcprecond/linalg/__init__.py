"""Operations on vectors and matrices that solvers and multigrid share."""
