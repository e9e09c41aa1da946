/** Variables that a published server needs, as they are written on the command line: `NAME`, or `NAME=what it is`. */
import { isSecretName } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'

export interface Variable {
  readonly name: string
  readonly about: string
  readonly secret: boolean
}

export function variableOf(word: string): Variable {
  const [, name = '', about] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? []
  if (name === '') throw new TypeError(`${clip(word)} is no variable: write NAME, or NAME=what it is`)
  return { name, about: about ?? `The value of ${name}`, secret: isSecretName(name) || /key|pass|auth/i.test(name) }
}
