/** What may be sent again, since the database has said that nothing of it was kept: for stores and tests beside this package's own. */
export { retryRolledBack } from "./internal/failures.ts"
