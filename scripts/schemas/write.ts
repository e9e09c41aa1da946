/** Writes the schemas to a folder: `node scripts/schemas/write.ts [folder]`, by default dist/schemas. The build runs it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/files.ts'
import { configFiles, configSchemas } from './config.ts'
import { generateSchemas } from './generate.ts'

export async function writeSchemas(folder = join(root, 'dist', 'schemas')): Promise<number> {
  const { documents, index } = await generateSchemas()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const put = (name: string, value: unknown) => writeFileSync(join(folder, name), `${JSON.stringify(value, null, 2)}\n`)
  for (const [name, document] of documents) put(name, document)
  const configs = configSchemas()
  for (const [name, document] of configs) put(name, document)
  const files = Object.entries(configFiles).map(([name, { title }]) => [name, { file: `${name}.json`, title }])
  put('index.json', { version, features: index, files: Object.fromEntries(files) })
  return documents.size + configs.size
}

if (import.meta.main) await writeSchemas(process.argv[2])
