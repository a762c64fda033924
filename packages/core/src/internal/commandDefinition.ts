/** The definition of runs that a command has in hand by itself: it looks in the register what people say, and no runner has them in work. */
export const commandDefinition = "command"
