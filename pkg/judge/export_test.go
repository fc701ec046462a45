package judge

// Plain is for tests of recordings.
var Plain = plain
