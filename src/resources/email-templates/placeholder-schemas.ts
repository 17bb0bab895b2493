// The entities of placeholders and the schema with the fields of each, for filling in and for
// validation.
export const placeholderSchemas = {
  leads: 'Lead',
  persons: 'Person',
  quotes: 'Quote',
  activities: 'Activity',
  organizations: 'Organization',
} as const
export type PlaceholderEntity = keyof typeof placeholderSchemas
