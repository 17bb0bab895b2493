// Builds the text by which the parameter `q` and the search find an organization.
import { joinLine, joinText, readRange, type SearchDocumentSource } from '../../../db/search/documents.ts'

export const searchDocument: SearchDocumentSource = {
  entity: 'organizations',
  async read(db, range) {
    const organizations = () => db.selectFrom('organizations').select(['id', 'name', 'address'])
    return (await readRange(db, 'organizations', range, organizations)).map(({ id, name, address }) => {
      const parts = (JSON.parse(address ?? '{}') ?? {}) as Record<string, string | null>
      const { city, country, ...rest } = parts
      return {
        id,
        title: name,
        subtitle: joinLine(city, country),
        body: joinText(...Object.values(rest), city, country),
      }
    })
  },
}
