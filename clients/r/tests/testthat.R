library(testthat)
library(umpc)

test_check("umpc")
