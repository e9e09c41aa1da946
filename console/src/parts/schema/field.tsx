/** A field of a form with its name, its description and what is wrong with it; lists, objects and alternatives contain further fields. */
import { type ReactNode, useId, useMemo, useRef, useState } from 'react'
import { Button } from '../button.tsx'
import { Text } from '../text.tsx'
import { type ControlProps, controlOf, JsonControl } from './controls.tsx'
import { alternativeOf, type Faults, fits, pathOf } from './fit.ts'
import { type Alternative, type Shape, shapeOf } from './shape.ts'
import { beginOf } from './start.ts'
import { isObject, type JsonObject, withMember } from './typed.ts'

export interface FieldProps {
  readonly name: string
  readonly path: string
  readonly schema: unknown
  readonly root: unknown
  readonly required: boolean
  readonly value: unknown
  readonly change: (value: unknown) => void
  readonly faults: Faults
}

/** Descriptions of strangers may be long; the whole text is in the definition. */
const longestDescription = 600

export function FormField(props: FieldProps): ReactNode {
  const { name, path, schema, root, required, value, change, faults } = props
  const id = useId()
  const shape = useMemo(() => shapeOf(schema, root), [schema, root])
  const fault = faults.get(path)
  const group = ['list', 'object', 'alternatives'].includes(shape.kind)
  const Label = group ? 'div' : 'label'
  const Box = group ? 'fieldset' : 'div'
  const hint = shape.kind === 'text' && shape.pattern !== undefined ? `matches ${shape.pattern}` : undefined
  return (
    <Box aria-labelledby={group ? `${id}-name` : undefined} className="min-w-0">
      <div className="flex min-h-7 items-baseline gap-2">
        <Label id={`${id}-name`} htmlFor={group ? undefined : id} className="min-w-0 font-medium break-words">
          <Text most={120}>{name}</Text>
          {required && (
            <span className="text-danger" title="required">
              *<span className="sr-only"> required</span>
            </span>
          )}
        </Label>
        {shape.title !== undefined && shape.title !== name && (
          <span className="min-w-0 truncate text-muted">
            <Text most={80}>{shape.title}</Text>
          </span>
        )}
        {value !== undefined && !required && (
          <button
            type="button"
            aria-label={`Unset ${name}`}
            className="ml-auto min-h-6 shrink-0 px-1 text-[0.86rem] text-muted underline"
            onClick={() => change(undefined)}
          >
            unset
          </button>
        )}
      </div>
      <Control {...props} shape={shape} id={id} />
      <div id={`${id}-said`} className="text-[0.93rem]">
        {fault !== undefined && (
          <p className="text-danger">
            <Text most={300}>{fault}</Text>
          </p>
        )}
        {(shape.description ?? hint) !== undefined && (
          <p className="text-muted">
            {shape.description !== undefined && <Text most={longestDescription}>{shape.description}</Text>}
            {hint !== undefined && (
              <code>
                {' '}
                <Text most={120}>{hint}</Text>
              </code>
            )}
          </p>
        )}
      </div>
    </Box>
  )
}

function Control({ shape, id, ...field }: FieldProps & { readonly shape: Shape; readonly id: string }): ReactNode {
  const { name, value, change, path, faults } = field
  const props: ControlProps = {
    id,
    label: name,
    value,
    change,
    said: `${id}-said`,
    wrong: faults.has(path),
    required: field.required,
  }
  // What the control cannot show, and a text with characters that an area would change, is not lost: it is edited as JSON.
  if (!fits(value, shape) || (typeof value === 'string' && value.includes('\r'))) return <JsonControl {...props} />
  switch (shape.kind) {
    case 'object':
      return <ObjectControl {...field} shape={shape} />
    case 'list':
      return <ListControl {...field} item={shape.item} />
    case 'alternatives':
      return <AlternativesControl {...field} alternatives={shape.alternatives} />
    default:
      return controlOf(shape, props)
  }
}

/** Not begun: one press begins it. */
function Begin({ name, schema, root, change }: FieldProps): ReactNode {
  return (
    <Button aria-label={`Set ${name}`} onClick={() => change(beginOf(schema, root) ?? null)}>
      Set
    </Button>
  )
}

const inside = 'space-y-3 border-l-2 border-line pl-3'

function ObjectControl({ shape, ...field }: FieldProps & { readonly shape: Shape & { readonly kind: 'object' } }): ReactNode {
  if (!isObject(field.value)) return <Begin {...field} />
  return (
    <div className={inside}>
      <ObjectFields {...field} value={field.value} shape={shape} />
    </div>
  )
}

/** The members of an object: those that the schema names, and whatever else stands in it. */
export function ObjectFields({
  shape,
  path,
  root,
  value,
  change,
  faults,
}: Pick<FieldProps, 'path' | 'root' | 'change' | 'faults'> & {
  readonly shape: Shape & { readonly kind: 'object' }
  readonly value: JsonObject
}): ReactNode {
  const named = new Set(shape.fields.map(({ name }) => name))
  const others = Object.keys(value)
    .filter(name => !named.has(name))
    .map(name => ({ name, schema: shape.others || true, required: false }))
  return (
    <>
      {[...shape.fields, ...others].map(({ name, schema, required }) => (
        <FormField
          key={name}
          name={name}
          path={pathOf(path, name)}
          schema={schema}
          root={root}
          required={required}
          value={Object.hasOwn(value, name) ? value[name] : undefined}
          change={next => change(withMember(value, name, next))}
          faults={faults}
        />
      ))}
      {shape.others !== false && (
        <NewMember
          add={name => change(Object.hasOwn(value, name) ? value : withMember(value, name, beginOf(shape.others, root) ?? null))}
        />
      )}
    </>
  )
}

function NewMember({ add }: { readonly add: (name: string) => void }): ReactNode {
  const [name, setName] = useState('')
  const act = () => {
    if (name === '') return
    add(name)
    setName('')
  }
  return (
    <div className="flex gap-2">
      <input
        aria-label="Name of a further member"
        placeholder="further member"
        autoComplete="off"
        className="min-w-0"
        value={name}
        onChange={event => setName(event.target.value)}
        onKeyDown={event => {
          if (event.key !== 'Enter') return
          event.preventDefault()
          act()
        }}
      />
      <Button disabled={name === ''} onClick={act}>
        Add member
      </Button>
    </div>
  )
}

/** Longer lists are edited as JSON. */
const mostItems = 100

function ListControl({ item, ...field }: FieldProps & { readonly item: unknown }): ReactNode {
  const { name, path, root, value, change, faults } = field
  if (!Array.isArray(value)) return <Begin {...field} />
  const items: readonly unknown[] = value
  if (items.length > mostItems)
    return <JsonControl id="" label={name} value={value} change={change} said="" wrong={false} required={false} />
  return (
    <div className={inside}>
      {items.map((each, index) => (
        <div key={pathOf(path, index)} className="flex items-start gap-2">
          <div className="min-w-0 flex-1">
            <FormField
              name={`${name} ${index + 1}`}
              path={pathOf(path, index)}
              schema={item}
              root={root}
              required
              value={each}
              change={next => change(items.map((old, at) => (at === index ? (next ?? null) : old)))}
              faults={faults}
            />
          </div>
          <Button
            look="quiet"
            aria-label={`Remove ${name} ${index + 1}`}
            onClick={() => change(items.filter((_, at) => at !== index))}
          >
            ✕
          </Button>
        </div>
      ))}
      <Button aria-label={`Add to ${name}`} onClick={() => change([...items, beginOf(item, root)])}>
        Add
      </Button>
    </div>
  )
}

/** What was typed in one alternative is there again when a person comes back to it. */
function AlternativesControl({
  alternatives,
  ...field
}: FieldProps & { readonly alternatives: readonly Alternative[] }): ReactNode {
  const { name, root, value, change } = field
  const [chosen, setChosen] = useState<number>()
  const kept = useRef(new Map<number, unknown>())
  const at = value === undefined ? -1 : (chosen ?? alternativeOf(value, alternatives, root))
  const choose = (next: number) => {
    if (at >= 0) kept.current.set(at, value)
    setChosen(next < 0 ? undefined : next)
    change(next < 0 ? undefined : (kept.current.get(next) ?? beginOf(alternatives[next]?.schema, root)))
  }
  return (
    <div className={inside}>
      <select
        aria-label={`Kind of ${name}`}
        className="max-w-full"
        value={String(at)}
        onChange={event => choose(Number(event.target.value))}
      >
        <option value="-1">not set</option>
        {alternatives.map(({ title }, index) => (
          <option key={`${index} ${title}`} value={String(index)}>
            {title.slice(0, 120)}
          </option>
        ))}
      </select>
      {at >= 0 && <Chosen {...field} schema={alternatives[at]?.schema} />}
    </div>
  )
}

/** The control of the chosen alternative; its name and its mistakes stand above it. */
function Chosen(field: FieldProps): ReactNode {
  const id = useId()
  const shape = useMemo(() => shapeOf(field.schema, field.root), [field.schema, field.root])
  return <Control {...field} shape={shape} id={id} />
}
