// Defines the searchable text of e-mails, for the parameter `q` and the search.
import { documentSource, firstWords, joinText, valuesIn } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'emails',
  rows: (db) => db.selectFrom('emails').select(['id', 'subject', 'from_name', 'text', 'from', 'to', 'cc', 'bcc']),
  toDocument: (row) => {
    const from = valuesIn(row.from)
    const recipients = [row.to, row.cc, row.bcc].flatMap(valuesIn)
    return {
      id: row.id,
      title: row.subject ?? firstWords(row.text),
      subtitle: row.from_name ?? from[0] ?? '',
      body: joinText(row.from_name, ...from, ...recipients, row.text),
    }
  },
})
