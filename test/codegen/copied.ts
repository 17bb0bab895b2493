// What a copy of the repository needs for its commands and tests, besides node_modules.
export const copied = [
  'src',
  'db',
  'codegen',
  'test',
  'openapi.yaml',
  'package.json',
  'tsconfig.json',
  'biome.json',
  '.gitignore',
]
