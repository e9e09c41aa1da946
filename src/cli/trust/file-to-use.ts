/**
 * A config file that was read and is not used yet. It is parsed once: what is shown is what is used, whatever happens to the file in
 * between. Variables are filled in only for whoever has a consent.
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { expand } from '../../host/config/expand.ts'
import { type HostConfig, type ParsedConfig, parseConfig, readParsed, surroundings } from '../../host/config/read.ts'
import type { Consent } from './decide.ts'
import { type Review, reviewOf } from './review.ts'

export interface FileParts {
  readonly file: string
  readonly text: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home?: string
  /** The part of it that holds servers, where that is not the whole. */
  readonly parsed?: ParsedConfig
  /** It is the user's own: it lies where a program of the user keeps its settings, outside of every project. */
  readonly own?: boolean
}

export interface FileToUse {
  readonly file: string
  readonly text: string
  readonly own: boolean
  /** What is shown and used. */
  readonly parsed: ParsedConfig
  /** As it is written, with `${VAR}` in its texts. */
  readonly written: HostConfig
  review(): Review
  /** The files of variables that it names, with their text; each is read once. */
  envFiles(): ReadonlyMap<string, string | undefined>
  /** With its variables filled in. */
  filled(consent: Consent): Promise<HostConfig>
}

export async function fileToUse(parts: FileParts): Promise<FileToUse> {
  const { file, text, env, home = homedir(), own = false } = parts
  const parsed = parts.parsed ?? (await parseConfig(text, file))
  const around = surroundings(file, { env, home })
  const read = new Map<string, string | undefined>()
  const textAt = (path: string): string | undefined => {
    if (!read.has(path)) read.set(path, contentOf(path))
    return read.get(path)
  }
  const review = (): Review =>
    reviewOf(parsed.root, path => {
      const expanded = expand(path, around)
      return 'text' in expanded ? textAt(resolve(around.folder, expanded.text)) : undefined
    })
  return {
    file,
    text,
    own,
    parsed,
    written: await readParsed(parsed, file, { env, home, variables: 'keep' }),
    review,
    envFiles: () => {
      review()
      return read
    },
    filled: _ =>
      readParsed(parsed, file, {
        env,
        home,
        envFile: path => {
          const found = textAt(path)
          if (found === undefined) throw new TypeError('It cannot be read')
          return found
        },
      }),
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
