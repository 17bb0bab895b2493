// Configures openapi-codegen to generate types and fetch calls for every operation. It takes the
// exports of this file as its configurations.
import { generateFetchers, generateSchemaTypes } from '@openapi-codegen/typescript'

export const accord = {
  from: { source: 'file', relativePath: './openapi.json' },
  outputDir: './made/openapi-codegen',
  to: async (context) => {
    const { schemasFiles } = await generateSchemaTypes(context, { filenamePrefix: 'accord' })
    await generateFetchers(context, { filenamePrefix: 'accord', schemasFiles })
  },
}
