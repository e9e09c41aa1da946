/** Variables in a config file: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${workspaceFolder}`, `${userHome}`. */
import { quoted, type Why, why } from '../../core/why.ts'

export interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder that the file belongs to. */
  readonly folder: string
  readonly home: string
}

/** One text, expanded; or why it cannot be. What was expanded is not looked at again: values are no templates. */
export function expand(text: string, around: ConfigEnvironment): { readonly text: string } | { readonly why: Why } {
  let fault: Why | undefined
  const out = text.replaceAll(/\$\{([^}]*)\}/g, (whole, inner: string) => {
    const value = variableOf(inner, around)
    if (typeof value === 'string') return value
    fault ??= value
    return whole
  })
  return fault === undefined ? { text: out } : { why: fault }
}

/** The variables of the environment that a text would take, by name; those of the folder and the home are no secrets. */
export function variablesIn(text: string): readonly string[] {
  return [...text.matchAll(/\$\{([^}]*)\}/g)].flatMap(([, inner = '']) => {
    if (inner === 'workspaceFolder' || inner === 'userHome') return []
    const [, name] = variable.exec(inner) ?? []
    return name === undefined ? [] : [name]
  })
}

const variable = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

function variableOf(inner: string, { env, folder, home }: ConfigEnvironment): string | Why {
  if (inner === 'workspaceFolder') return folder
  if (inner === 'userHome') return home
  if (inner.startsWith('input:'))
    return why(
      'INPUT_UNSUPPORTED',
      'config.inputs',
      `\${${inner}} asks the user of an editor, and here is none`,
      `Write a variable of the environment instead, such as \${API_KEY}`,
    )
  const [, name, fallback] = variable.exec(inner) ?? []
  if (name === undefined)
    return why(
      'VARIABLE_UNKNOWN',
      'config.variables',
      `${quoted(`\${${inner}}`)} is no variable`,
      `Write \${NAME}, \${NAME:-default} or \${env:NAME}`,
    )
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (value !== undefined && (value !== '' || fallback === undefined)) return value
  return (
    fallback ??
    why('VARIABLE_MISSING', 'config.variables', `The variable ${name} is not set`, `Set ${name}, or write \${${name}:-default}`)
  )
}
