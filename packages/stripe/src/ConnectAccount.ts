/**
 * Which connected account a charge is for, and how a request carries it: in its namespace, behind an `@`, as in
 * `zmq-billing@acct_1A2b`.
 *
 * The namespace is part of the identity, and so of the charge key, the ledger's row, the cap and the wire. So the same
 * customer and period of two accounts are two charges that cannot meet, and the keys of charges without an account are what
 * they were.
 */

/** The account that a namespace names, or `undefined`: then the account of `PURSER_STRIPE_ACCOUNT`, else the key's own. */
export const accountOf = (namespace: string): string | undefined => /@(acct_[A-Za-z0-9_]{1,240})$/.exec(namespace)?.[1]

/** The namespace of an account. */
export const namespaceFor = (namespace: string, account: string): string => `${namespace}@${account}`
