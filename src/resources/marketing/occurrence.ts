// The occurrence of a campaign run (DOMAIN 20.2): the date of its event, or none. An address gets
// each occurrence once.

/** The occurrence of a campaign without a date: each address gets it once. */
export const undatedOccurrence = 'once'

export const occurrenceOf = (date: string | null | undefined): string => date ?? undatedOccurrence
