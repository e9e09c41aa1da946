/** What is wrong with a config file as such: mistakes by their line, and what only some programs can read. */
import { readFileSync } from 'node:fs'
import type { ConfigFault, HostConfig } from '../../host/config/read.ts'
import { type Finding, fail, warn } from './finding.ts'

/** Mistakes that are no single server's. */
export function examineFile(config: HostConfig, path: string): readonly Finding[] {
  const general = config.faults
    .filter(({ server }) => server === undefined)
    .map(fault => fail('config', `line ${fault.line}: ${fault.why.message}`, fixOf(fault)))
  return [...general, ...(general.length === 0 ? strictly(path) : [])]
}

function fixOf({ why: { message, fix } }: ConfigFault): string {
  if (/invalid escape/.test(message)) return 'A backslash stands twice in JSON: "C:\\\\Users\\\\…"; or write /'
  if (/comma expected/.test(message)) return 'Put one between this member and the one before it'
  return fix
}

/** Comments and commas at an end are fine for editors; other programs do not start a single server of such a file. */
function strictly(path: string): readonly Finding[] {
  if (/\.(ya?ml|jsonc)$/i.test(path)) return []
  const text = textOf(path)
  try {
    JSON.parse(text)
    return []
  } catch {
    const bare = withoutStrings(text)
    const comma = /,(?=\s*[}\]])/.exec(bare)
    const comment = /\/\/|\/\*/.exec(bare)
    const [at, what] =
      comment !== null && (comma === null || comment.index < comma.index)
        ? [comment.index, 'a comment']
        : [comma?.index ?? 0, 'a comma behind the last member']
    const line = text.slice(0, at).split('\n').length
    const message = `line ${line}: there is ${what}, which JSON does not have`
    return [warn('config', message, 'Remove it: some clients take it, others read none of the file (Claude Desktop, for one)')]
  }
}

/** The same length, with every text emptied, so that only the signs of JSON are left. */
function withoutStrings(text: string): string {
  return text.replace(/"(?:[^"\\\n]|\\.)*"/g, found => `"${' '.repeat(found.length - 2)}"`)
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '{}'
  }
}
