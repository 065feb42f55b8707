"""The numbers a reader may argue with: value, unit, reason."""

# The default metric: graded, with a cutoff, and what most leaderboards print.
METRIC = "nDCG@10"

# The margin every gap has to clear, in metric units. 0.05 is the difference that
# IR tests have long called material (Sparck Jones, 1974).
TAU = 0.05

# The family-wise error rate of the four intervals together.
ALPHA = 0.05

# Draws of each null, and the base number of resamples of the interval.
N_BOOT = 1000

# The fewest draws that leave an order statistic to read an end from.
N_BOOT_LEAST = 200

# The seed of every stream.
SEED = 0

# The lowest grade that counts as relevant, as trec_eval -l.
REL_LEVEL = 1

# Queries of the real run that are scored by pytrec_eval as well, in every gate.
SELF_CHECK_QUERIES = 200

# The largest difference between our kernel and pytrec_eval, in metric units.
SELF_CHECK_TOLERANCE = 1e-9

# The cutoff of the companion metric where the graded metric has none.
COMPANION_CUTOFF = 10

# How far down a list its unjudged documents are looked at, whatever the metric: for
# what is odd about the list, and for ids that would meet if spelled otherwise.
LOOKED_AT = 10

# A tie range narrower than this cannot move a score's third decimal.
TIE_RANGE_SHOWN = 0.0005

# Cells of an array held at once while drawing or resampling: 2 MB of doubles,
# which stays in the second-level cache's neighbourhood and bounds the memory.
BLOCK_CELLS = 1 << 17

# The same where M is written out densely: 32 MB, and the larger the block, the
# fewer times M is written out.
DENSE_BLOCK_CELLS = 1 << 22

# Bytes of a file parsed at once: some 16,000 lines of a run. Half of it takes a
# tenth more time, and twice as much 5 MB more for each process.
CHUNK_BYTES = 5 << 17

# The smallest file that several processes read: starting one takes 10 ms, reading this
# much 0.3 s.
SHARED_BYTES = 1 << 26

# To read a line takes as long as to draw so many cells, queries times draws.
CELLS_A_LINE = 8

# The fewest cells, lines counted in, from which several threads draw: somebody waits a
# second then. Two take a third less time, but a tenth more of the processor, and a
# third more where queries have several relevant documents.
SHARED_CELLS = 50_000_000

# Processes and threads that share the work, where nothing is said: what cannot be
# shared takes a quarter of the time, so that more would bring little.
MOST_THREADS = 4

# The deepest cutoff: pytrec_eval numbers ranks by 32-bit floats, whole up to here.
DEEPEST = 1 << 24

# The largest corpus: whole numbers are exact in a double up to here.
LARGEST_CORPUS = 1 << 53
