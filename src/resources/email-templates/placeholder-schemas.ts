// The entities that placeholders can refer to, and the contract schema with the fields of each
// entity.
export const placeholderSchemas = {
  leads: 'Lead',
  persons: 'Person',
  quotes: 'Quote',
  activities: 'Activity',
  organizations: 'Organization',
} as const
export type PlaceholderEntity = keyof typeof placeholderSchemas
