// The occurrence that identifies a campaign run: the date of the campaign's event, or
// `once` without an event date. An address gets at most one e-mail per campaign and occurrence.

/**
 * The occurrence of a campaign without an event date. All runs of the campaign share this
 * occurrence, so each address gets the campaign only once.
 */
export const undatedOccurrence = 'once'

export const occurrenceOf = (date: string | null | undefined): string => date ?? undatedOccurrence
