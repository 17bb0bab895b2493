// Defines the searchable text of leads, for the parameter `q` and the search. The text
// contains the organization of the lead's person.
import { documentSource, joinLine, joinText, valuesIn } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'leads',
  quotes: { persons: 'person_id' },
  rows: (db) =>
    db
      .selectFrom('leads')
      .leftJoin('persons', 'persons.id', 'leads.person_id')
      .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
      .select(['leads.id', 'leads.title', 'leads.description'])
      .select(['persons.name as person', 'persons.emails', 'organizations.name as organization']),
  toDocument: (row) => ({
    id: row.id,
    title: row.title,
    subtitle: joinLine(row.person, row.organization),
    body: joinText(row.person, row.organization, ...valuesIn(row.emails), row.description),
  }),
})
