// What a run of a campaign is for (DOMAIN 20.2): the date of its event, or no date. An address gets each occurrence once.

/** The occurrence of a campaign without a date: it goes to each address once. */
export const undatedOccurrence = 'once'

export const occurrenceOf = (date: string | null | undefined): string => date ?? undatedOccurrence
