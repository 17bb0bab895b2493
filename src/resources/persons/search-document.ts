// Builds the text by which the parameter `q` and the search find a person.
import { documentSource, joinLine, joinText, phoneNumbersIn, valuesIn } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'persons',
  quotes: { organizations: 'organization_id' },
  rows: (db) =>
    db
      .selectFrom('persons')
      .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
      .select(['persons.id', 'persons.name', 'persons.emails', 'persons.contact_numbers', 'persons.job_title'])
      .select('organizations.name as organization'),
  toDocument: (row) => ({
    id: row.id,
    title: row.name,
    subtitle: joinLine(row.job_title, row.organization),
    body: joinText(...valuesIn(row.emails), ...phoneNumbersIn(row.contact_numbers), row.job_title, row.organization),
  }),
})
