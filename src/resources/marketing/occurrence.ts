// The occurrence of a campaign run (DOMAIN 20.2): the date of the campaign's event, or `once`. An
// address gets at most one e-mail per campaign and occurrence.

/** The occurrence of a campaign without an event date, so each address gets the campaign once. */
export const undatedOccurrence = 'once'

export const occurrenceOf = (date: string | null | undefined): string => date ?? undatedOccurrence
