/** A result as people read it: its texts, its pictures, its structured part. Whatever else stands in it is shown as JSON. */
import { type ReactNode, useEffect, useState } from 'react'
import { Json } from '../../parts/json.tsx'
import { LongText } from '../../parts/long-text.tsx'
import { isObject, type JsonObject } from '../../parts/schema/typed.ts'
import { Text } from '../../parts/text.tsx'

export function ResultContent({ result, label }: { readonly result: unknown; readonly label: string }): ReactNode {
  const parts = partsOf(result)
  if (parts === undefined) return <Json value={result} label={label} />
  const structured = isObject(result) ? result['structuredContent'] : undefined
  return (
    <div className="space-y-2">
      {parts.length === 0 && structured === undefined && <p className="text-muted">It is empty.</p>}
      {parts.slice(0, mostParts).map((part, index) => (
        <Part key={`part ${index + 1}`} part={part} label={`${label}, part ${index + 1}`} />
      ))}
      {parts.length > mostParts && <p className="text-muted">{`${parts.length - mostParts} further parts: see raw.`}</p>}
      {structured !== undefined && (
        <div>
          <p className="label">structured</p>
          <Json value={structured} label={`${label}, structured`} />
        </div>
      )}
    </div>
  )
}

const mostParts = 100

/** The parts of a tool's result, a resource or a prompt; undefined for anything else. */
function partsOf(result: unknown): readonly unknown[] | undefined {
  if (!isObject(result)) return undefined
  if (Array.isArray(result['content'])) return result['content']
  if (Array.isArray(result['contents'])) return result['contents']
  if (!Array.isArray(result['messages'])) return undefined
  return result['messages'].map((message: unknown) =>
    isObject(message) && isObject(message['content']) ? { ...message['content'], role: message['role'] } : message,
  )
}

/** What a browser may draw: nothing of it can act. */
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

function Part({ part, label }: { readonly part: unknown; readonly label: string }): ReactNode {
  if (!isObject(part)) return <Json value={part} label={label} />
  const resource = isObject(part['resource']) ? part['resource'] : part
  const text = resource['text']
  const data = resource['blob'] ?? part['data']
  const type = String(resource['mimeType'] ?? '')
  const about = [part['role'], resource['uri'], type].filter(each => typeof each === 'string' && each !== '').join(' · ')
  return (
    <div>
      {about !== '' && (
        <p className="label break-all">
          <Text most={400}>{about}</Text>
        </p>
      )}
      {typeof text === 'string' ? (
        <LongText text={text} label={label} />
      ) : typeof data === 'string' && pictures.has(type) ? (
        <Picture data={data} type={type} label={label} />
      ) : (
        <Json value={shortened(part)} label={label} />
      )}
    </div>
  )
}

/** Data that is no picture is named by its length. */
function shortened(part: JsonObject): unknown {
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      (name === 'data' || name === 'blob') && typeof value === 'string' && value.length > 200
        ? `… ${value.length.toLocaleString('en')} characters`
        : value,
    ]),
  )
}

function Picture({ data, type, label }: { readonly data: string; readonly type: string; readonly label: string }): ReactNode {
  const [address, setAddress] = useState<string>()
  useEffect(() => {
    const bytes = decoded(data)
    if (bytes === undefined) return setAddress(undefined)
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setAddress(made)
    return () => URL.revokeObjectURL(made)
  }, [data, type])
  if (address === undefined) return <p className="text-muted">The picture cannot be read.</p>
  return <img src={address} alt={label} className="max-h-96 max-w-full rounded border border-line" />
}

function decoded(data: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(data), character => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
