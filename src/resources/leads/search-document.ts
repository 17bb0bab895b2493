// Defines the searchable text of leads, for the parameter `q` and the search. The text
// contains the organization of the lead's person.
import { joinLine, joinText, readRange, type SearchDocumentSource, valuesIn } from '../../../db/search/documents.ts'

export const searchDocument: SearchDocumentSource = {
  entity: 'leads',
  quotes: { persons: 'person_id' },
  async read(db, range) {
    const leads = () =>
      db
        .selectFrom('leads')
        .leftJoin('persons', 'persons.id', 'leads.person_id')
        .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
        .select(['leads.id', 'leads.title', 'leads.description'])
        .select(['persons.name as person', 'persons.emails', 'organizations.name as organization'])
    return (await readRange(db, 'leads', range, leads)).map((row) => ({
      id: row.id,
      title: row.title,
      subtitle: joinLine(row.person, row.organization),
      body: joinText(row.person, row.organization, ...valuesIn(row.emails), row.description),
    }))
  },
}
