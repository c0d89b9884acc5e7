import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.backend.AbstractSynchronizedMongoDatabase;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.oplog.Oplog;
import java.util.List;
import org.h2.mvstore.MVMap;
import org.h2.mvstore.MVStore;

/** A database in an MVStore. (The library's own drops, with a database, every other one whose name begins with the same letters.) */
final class StandInDatabase extends AbstractSynchronizedMongoDatabase<Object> {

    private final MVStore store;

    StandInDatabase(String name, MVStore store, CursorRegistry cursors) {
        super(name, cursors);
        this.store = store;
        initializeNamespacesAndIndexes();
    }

    // H2Backend finds the databases of a file by this prefix.
    private MVMap<Object, Document> documents(String collection) {
        return store.openMap("databases." + getFullCollectionNamespace(collection));
    }

    private MVMap<String, Object> meta(String collection) {
        return store.openMap("meta." + getFullCollectionNamespace(collection));
    }

    @Override
    protected MongoCollection<Object> openOrCreateCollection(String collection, CollectionOptions options) {
        return new StandInCollection(this, collection, options, documents(collection), meta(collection), cursorRegistry);
    }

    @Override
    protected Index<Object> openOrCreateUniqueIndex(String collection, String name, List<IndexKey> keys, boolean sparse) {
        return new UniqueIndex(name, keys, sparse);
    }

    @Override
    public void dropCollection(String collection, Oplog oplog) {
        super.dropCollection(collection, oplog);
        store.removeMap(documents(collection));
        store.removeMap(meta(collection));
    }

    @Override
    public void moveCollection(MongoDatabase from, MongoCollection<?> collection, String newName) {
        throw new UnsupportedOperationException("the stand-in renames no collection");
    }

    @Override
    protected long getStorageSize() {
        return store.getFileStore() == null ? 0 : store.getFileStore().size();
    }

    @Override
    protected long getFileSize() {
        return getStorageSize();
    }
}
