/** Calls of many fibers, answered by one statement: for stores that other packages build on `Database`. */
export * from "./internal/groupCommit.ts"
