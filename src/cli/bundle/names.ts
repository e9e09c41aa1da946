/** Names that come from a package.json or a folder and become names of files: none of them may lead anywhere else. */
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'

/** As npm takes them: a name, or a scope and a name. No dot at the beginning, so no `..`. */
const packageName = /^(@[a-z0-9~_-][a-z0-9._~-]*\/)?[a-z0-9~_-][a-z0-9._~-]*$/i
/** https://semver.org, without a limit on what its parts mean. */
const version = /^\d{1,16}\.\d{1,16}\.\d{1,16}(-[0-9a-z-]+(\.[0-9a-z-]+)*)?(\+[0-9a-z-]+(\.[0-9a-z-]+)*)?$/i

const longest = 214

export function isPackageName(name: string): boolean {
  return name.length <= longest && packageName.test(name)
}

export function checkedName(name: string): string {
  if (isPackageName(name)) return name
  throw new CliError(
    1,
    `package.json has the name "${clip(name)}", which npm does not take`,
    'Write "name": "notes", or "@you/notes"',
  )
}

export function checkedVersion(text: string): string {
  if (text.length <= 128 && version.test(text)) return text
  throw new CliError(1, `package.json has the version "${clip(text)}", which is none`, 'Write "version": "1.2.3"')
}

/** The file of a bundle, where no other is named. */
export function bundleName(facts: { readonly name: string; readonly version: string }): string {
  return `${facts.name.replace(/^@/, '').replaceAll('/', '-')}-${facts.version}.mcpb`
}

/** A path inside an archive: relative, with slashes, and without a step upwards. Whoever unpacks it must stay in one folder. */
export function checkedEntry(path: string): string {
  const parts = path.split('/')
  const fine = parts.every(part => part !== '' && part !== '.' && part !== '..') && !/[\\\p{Cc}\p{Cf}]|^[a-z]:/iu.test(path)
  if (fine) return path
  throw new CliError(1, `"${clip(path)}" cannot be the path of a file in a bundle`, 'Rename the file')
}
