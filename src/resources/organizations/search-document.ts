// Builds the text by which the parameter `q` and the search find an organization.
import { documentSource, joinLine, joinText } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'organizations',
  rows: (db) => db.selectFrom('organizations').select(['id', 'name', 'address']),
  toDocument: ({ id, name, address }) => {
    const parts = (JSON.parse(address ?? '{}') ?? {}) as Record<string, string | null>
    const { city, country, ...rest } = parts
    return {
      id,
      title: name,
      subtitle: joinLine(city, country),
      body: joinText(...Object.values(rest), city, country),
    }
  },
})
