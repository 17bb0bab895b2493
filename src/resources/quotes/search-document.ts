// Builds the text by which the parameter `q` and the search find a quote.
import { joinLine, joinText, readRange, type SearchDocumentSource } from '../../../db/search/documents.ts'

export const searchDocument: SearchDocumentSource = {
  entity: 'quotes',
  quotes: { persons: 'person_id' },
  async read(db, range) {
    const quotes = () =>
      db
        .selectFrom('quotes')
        .leftJoin('persons', 'persons.id', 'quotes.person_id')
        .select(['quotes.id', 'quotes.subject', 'quotes.description', 'persons.name as person'])
    return (await readRange(db, 'quotes', range, quotes)).map((row) => ({
      id: row.id,
      title: row.subject,
      subtitle: joinLine(row.person),
      body: joinText(row.person, row.description),
    }))
  },
}
