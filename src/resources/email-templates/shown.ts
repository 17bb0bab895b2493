// What placeholders tell of, and the schema that shows it. Those who fill them in and those who look at them before both need it.
export const shown = {
  leads: 'Lead',
  persons: 'Person',
  quotes: 'Quote',
  activities: 'Activity',
  organizations: 'Organization',
} as const
export type Told = keyof typeof shown
