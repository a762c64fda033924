export * from "./Database.ts"
export * from "./DatabaseError.ts"
