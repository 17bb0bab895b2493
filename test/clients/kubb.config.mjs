// Configures kubb to generate types and fetch calls for every operation with its common plug-ins.
import { defineConfig } from '@kubb/core'
import { pluginClient } from '@kubb/plugin-client'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginTs } from '@kubb/plugin-ts'

export default defineConfig({
  root: '.',
  input: { path: './openapi.json' },
  output: { path: './made/kubb', clean: true },
  plugins: [
    pluginOas({ validate: true, generators: [] }),
    pluginTs({ output: { path: './models' } }),
    pluginClient({ output: { path: './clients' }, client: 'fetch' }),
  ],
})
