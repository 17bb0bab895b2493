// Builds the text by which the parameter `q` and the search find a quote.
import { documentSource, joinLine, joinText } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'quotes',
  quotes: { persons: 'person_id' },
  rows: (db) =>
    db
      .selectFrom('quotes')
      .leftJoin('persons', 'persons.id', 'quotes.person_id')
      .select(['quotes.id', 'quotes.number', 'quotes.subject', 'quotes.description', 'persons.name as person']),
  toDocument: (row) => ({
    id: row.id,
    title: row.subject,
    subtitle: joinLine(row.number, row.person),
    body: joinText(row.number, row.person, row.description),
  }),
})
