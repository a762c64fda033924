/** The definition of runs that a command has in hand by itself: it looks in the register what people say, and no runner has them in work. */
export const commandDefinition = "command"

/** What the detail of an interrupted run begins with, once another run has gone on with what it had left. */
export const goneOnWith = "gone on with as run "
