package judge

// Plain is for the tests that judge recordings.
var Plain = plain
