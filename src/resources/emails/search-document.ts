// Defines the searchable text of e-mails, for the parameter `q` and the search.
import { firstWords, joinText, readRange, type SearchDocumentSource, valuesIn } from '../../../db/search/documents.ts'

export const searchDocument: SearchDocumentSource = {
  entity: 'emails',
  async read(db, range) {
    const emails = () =>
      db.selectFrom('emails').select(['id', 'subject', 'from_name', 'text', 'from', 'to', 'cc', 'bcc'])
    return (await readRange(db, 'emails', range, emails)).map((row) => {
      const from = valuesIn(row.from)
      const recipients = [row.to, row.cc, row.bcc].flatMap(valuesIn)
      return {
        id: row.id,
        title: row.subject ?? firstWords(row.text),
        subtitle: row.from_name ?? from[0] ?? '',
        body: joinText(row.from_name, ...from, ...recipients, row.text),
      }
    })
  },
}
