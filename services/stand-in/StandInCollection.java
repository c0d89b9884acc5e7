import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.backend.h2.H2Collection;
import de.bwaldvogel.mongo.bson.Document;
import java.util.Collection;
import java.util.List;
import org.h2.mvstore.MVMap;

/**
 * A collection that looks documents up by index wherever the query allows it. The library does so only when the query names exactly the fields of a unique
 * index; an update guarded by one more field then reads the whole collection.
 */
final class StandInCollection extends H2Collection {

    StandInCollection(MongoDatabase database, String name, CollectionOptions options, MVMap<Object, Document> documents, MVMap<String, Object> meta,
                      CursorRegistry cursors) {
        super(database, name, options, documents, meta, cursors);
    }

    @Override
    public synchronized void addIndex(Index<Object> index) {
        super.addIndex(index);
        List<IndexKey> first = index.getKeys().subList(0, 1);
        // Nothing happens if a leading index of that name is there already.
        super.addIndex(new LeadingIndex(LeadingIndex.NAME_PREFIX + first.get(0).getKey(), first));
    }

    @Override
    public synchronized void drop() {
        getIndexes().removeIf(index -> index instanceof LeadingIndex);
        super.drop();
    }

    @Override
    protected void removeDocument(Object position) {
        Document document = getDocument(position);
        for (Index<Object> index : getIndexes()) {
            if (index instanceof LeadingIndex leading) {
                leading.forget(document, position);
            }
        }
        super.removeDocument(position);
    }

    @Override
    protected boolean tracksDataSize() {
        return false;
    }

    @Override
    protected QueryResult queryDocuments(Document query, Document orderBy, int skip, int limit, int batchSize, Document fields) {
        Collection<Object> candidates = isNaturalDescending(orderBy) ? null : candidates(query);
        if (candidates == null) {
            return super.queryDocuments(query, orderBy, skip, limit, batchSize, fields);
        }
        // Every candidate is still held against the whole query.
        return matchDocuments(query, candidates, orderBy, skip, limit, batchSize, fields);
    }

    /** The smallest set of positions that an index gives and that surely holds all matches; null: no index helps. */
    private Collection<Object> candidates(Document query) {
        Collection<Object> best = null;
        for (Index<Object> index : getIndexes()) {
            Collection<Object> found = null;
            if (index instanceof LeadingIndex leading) {
                found = leading.candidates(query.get(leading.field()));
            } else if (index instanceof UniqueIndex unique) {
                Document key = equalities(unique, query);
                if (key != null && unique.canHandle(key)) {
                    return (Collection<Object>) unique.getPositions(key);
                }
            }
            if (found != null && (best == null || found.size() < best.size())) {
                best = found;
            }
        }
        return best;
    }

    /** The part of the query that pins every field of the index to one plain value; null: some field is not pinned. */
    private static Document equalities(UniqueIndex index, Document query) {
        Document key = new Document();
        for (IndexKey indexKey : index.getKeys()) {
            Object value = LeadingIndex.pinned(query.get(indexKey.getKey()));
            if (value == null) {
                return null;
            }
            key.put(indexKey.getKey(), value);
        }
        return key;
    }
}
