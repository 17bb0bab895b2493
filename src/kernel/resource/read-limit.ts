// The limit of questions, in a file of its own so that tests can lower it.

/** The largest number of records that a `where` may read; the contract states it. */
export const maxRead = 200_000
