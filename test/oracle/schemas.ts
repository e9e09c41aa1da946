/** The official JSON Schemas, where this machine has them: `VIVARIUM_SCHEMAS` names a folder with `<revision>/schema.json`. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RevisionId } from '../../src/revisions/index.ts'

export interface SchemaFile {
  readonly $schema: string
  readonly $defs?: Definitions
  readonly definitions?: Definitions
}

export type Definitions = Readonly<Record<string, SchemaNode>>
export type SchemaNode = { readonly [key: string]: unknown }

/** The dialect has no schema: its frames are held to its transcripts alone. */
export const judged = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', 'draft-2026-v1'] as const
export type Judged = (typeof judged)[number]

export function isJudged(revision: RevisionId): revision is Judged {
  return revision !== 's3'
}

/** Undefined: nobody asked for the check. A folder that was named but is not there is an error. */
export function schemaFolder(env: Readonly<Record<string, string | undefined>> = process.env): string | undefined {
  const folder = env['VIVARIUM_SCHEMAS']
  if (folder === undefined || folder === '') return undefined
  for (const revision of judged) {
    const file = join(folder, revision, 'schema.json')
    if (!existsSync(file))
      throw new Error(`VIVARIUM_SCHEMAS names a folder without ${file}; unset it to skip the check of frames`)
  }
  return folder
}

export function readSchema(folder: string, revision: Judged): SchemaFile {
  return JSON.parse(readFileSync(join(folder, revision, 'schema.json'), 'utf8'))
}

export function definitionsOf(schema: SchemaFile): Definitions {
  return schema.$defs ?? schema.definitions ?? {}
}
